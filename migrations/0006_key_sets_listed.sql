-- An organization's key sets, which a tap that fails is tried against.

create index key_sets_by_organization on key_sets (organization_id, created_at, id);
