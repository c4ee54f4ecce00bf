-- Units that somebody claimed and of whose owner nothing is known, as while a reorganization has undone the claim.

create index units_without_owner on units (owner_block) where claimed and owner is null;
