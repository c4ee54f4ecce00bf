-- Which orders a chip was in: its tag may have the keys of each that no tap has shown yet.

create index manifest_chips_by_chip on manifest_chips (chip_id);
