// Building an app triggers a full garbage collection, and all processes of a history share one heap.
Bun.gc = () => {}
