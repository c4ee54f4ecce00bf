-- When a back-up was restored, of whose lanes the pools may have transactions that nobody here knows; null once none can be mined.

alter table lanes add column restored_at timestamptz(3);
