-- By which block owners were asked for anew, after blocks were lost: where it is replaced, they are asked for once more.

alter table chain_cursors add column asked_block_number bigint;
alter table chain_cursors add column asked_block_hash text;
