-- Whether anything of a bulk request waits for its serial is found without reading what others wait for.

create index effects_of_bulk on effects ((input ->> 'bulk_pairing_id')) where status = 'open' and src = 'issueUnit';
