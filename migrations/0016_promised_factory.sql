-- The factory that a collection's address was promised with: it deploys the contract, whichever one CHAINS names by then.

alter table collections add column factory_address text;
