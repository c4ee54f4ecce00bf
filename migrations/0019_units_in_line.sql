-- Which units of a collection wait for their serials, oldest first, in whichever lanes they wait.

create index effects_in_line on effects ((input ->> 'collection_id'), id)
  where status = 'open' and transaction_id is null and src = 'issueUnit';
