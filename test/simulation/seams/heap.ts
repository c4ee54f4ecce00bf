// Every app that is built has the whole heap collected, and every process of a history shares one heap.
Bun.gc = () => {}
