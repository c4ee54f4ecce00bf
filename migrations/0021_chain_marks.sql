-- Blocks up to which a chain was read, ever further apart the older they are: where the newest ones turn out to be lost,
-- reading goes on from the newest that is still part of the chain.

create table chain_marks (
  chain_id bigint not null,
  block_number bigint not null,
  block_hash text not null,
  kept_until bigint not null,
  primary key (chain_id, block_number)
);

insert into chain_marks (chain_id, block_number, block_hash, kept_until)
select chain_id, owners_block_number, owners_block_hash, 2 * owners_block_number
from chain_cursors
where owners_block_number is not null;
