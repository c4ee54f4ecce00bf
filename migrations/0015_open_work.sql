-- For whom an effect is, beside the effect: what an organization has waiting is counted, and shared out, without its
-- actors. Effects of the release before, which does not know the column, count for nobody.

alter table effects add column organization_id uuid;
update effects set organization_id = (select organization_id from actors where actors.id = effects.actor_id)
  where status = 'open';
create index effects_open_by_organization on effects (organization_id) where status = 'open' and queue like 'lane:%';
