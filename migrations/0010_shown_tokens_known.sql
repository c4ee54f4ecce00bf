-- What is known of units that were issued before: in a file of its own, because nobody can read a table to which columns are
-- added until all of that file is done. Whoever has run 0010 when it did this itself finds nothing left to do.

update units set
  owner = (select recipient from transfers where transfers.unit_id = units.id and transfers.status = 'confirmed' order by updated_at desc, id desc limit 1),
  ownership_updated_at = (select updated_at from transfers where transfers.unit_id = units.id and transfers.status = 'confirmed' order by updated_at desc, id desc limit 1)
where claimed and ownership_updated_at is null and exists (select id from transfers where transfers.unit_id = units.id and transfers.status = 'confirmed');
update units set
  owner = (select recipient from claims where claims.unit_id = units.id and claims.status = 'claimed' order by id desc limit 1),
  ownership_updated_at = (select updated_at from claims where claims.unit_id = units.id and claims.status = 'claimed' order by id desc limit 1)
where claimed and ownership_updated_at is null and exists (select id from claims where claims.unit_id = units.id and claims.status = 'claimed');
update units set ownership_updated_at = (select updated_at from actors where actors.id = units.id)
where token_status = 'active' and ownership_updated_at is null;
