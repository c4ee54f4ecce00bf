-- How much of each kind is open, and the oldest of it, is told by an index alone. Every kind has a name: nobody else than who
-- asks for one by that takes this index, which leads by nothing else.

create index effects_open_by_kind on effects (src, created_at) where status = 'open' and src > '';

-- Of the authorizations that wait for wallets those are found which nobody can tell of, and then those whose time is over.

create index effects_watched_until on effects (src, (case when last_error is null then input ->> 'deadline_at' else '' end))
  where status = 'open' and src >= 'watchAuthorization';
