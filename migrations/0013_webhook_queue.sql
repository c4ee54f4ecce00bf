-- Whether an event still waits for an endpoint, without reading all that waits.

create index webhook_queue_by_event on webhook_queue (event_id);
