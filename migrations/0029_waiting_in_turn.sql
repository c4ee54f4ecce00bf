-- What waits for a lane is found line by line, an organization's of one kind and collection, without reading what waits in
-- each behind that.

create index effects_waiting on effects (queue, (coalesce(cast(organization_id as text), '') || ' ' || src || ' ' || coalesce(input ->> 'collection_id', '')), id)
  where status = 'open' and transaction_id is null;
