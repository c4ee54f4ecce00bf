-- The status follows from the token's and the owner, so it is indexed and not stored: src/db/ownership.ts says the same.
-- These are made when 0010 has not made them.
create index if not exists units_by_ownership on units (organization_id, (case when token_status = 'pending' then 'unissued' when owner is null then 'custody' else 'owned' end), created_at, id);
create index if not exists units_of_collection_by_ownership on units (collection_id, (case when token_status = 'pending' then 'unissued' when owner is null then 'custody' else 'owned' end), created_at, id);
create index if not exists units_by_owner_block on units (owner_block) where owner_block is not null;
