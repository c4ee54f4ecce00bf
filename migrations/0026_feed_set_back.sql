-- Where two processes' readers had set the feed back, its next events would have got positions that were given already.

update event_feeds set last_position = (select max(position) from events)
where last_position < (select max(position) from events);
