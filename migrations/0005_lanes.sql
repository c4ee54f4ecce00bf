-- What several attempts for one nonce need to remember, now that a later one may be cheaper than the one before it.

alter table transaction_attempts add column number bigint;
alter table transaction_attempts add column last_outcome text;
create index transaction_attempts_number on transaction_attempts (transaction_id, number);
