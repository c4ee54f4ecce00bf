-- What the taps of a chip skipped, summed with its row: by its first so many scans. Where those are not all its scans, as
-- after a tap that the release before recorded, the taps are summed whenever they are asked for, until the next tap does.

alter table chips add column summed_skips bigint not null default 0;
alter table chips add column summed_scans bigint not null default 0;

-- Of few taps the sum costs little, and to write each row would hold up all taps for long.
update chips set
  summed_skips = (select coalesce(sum(taps.skipped), 0) from taps where taps.chip_id = chips.chip_id),
  summed_scans = scan_count
where scan_count > 100;
