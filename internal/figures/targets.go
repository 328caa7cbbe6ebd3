package main

// target is one promised figure: a metric of a benchmark and its bound.
type target struct {
	what   string
	bench  string
	metric string
	// bound is 0 for a figure without a promise.
	bound float64
	// least reports whether the figure must be at least the bound.
	least bool
	unit  string
	// once says that `make bench` runs the benchmark a single time: it counts, or
	// its target is far away, so that more runs would say nothing new.
	once bool
}

var targets = []target{
	{what: "CPU of a turn against the lean loop, in memory, one run of 50 turns with one call each", bench: "BenchmarkTurn/memory/runs=1/N=50/K=1", metric: "ratio", bound: 1.6, unit: "x"},
	{what: "CPU of a turn against the lean loop, in memory, one run of 20 turns with eight calls each", bench: "BenchmarkTurn/memory/runs=1/N=20/K=8", metric: "ratio", bound: 2, unit: "x"},
	{what: "CPU of a turn against the lean loop, in memory, 64 runs", bench: "BenchmarkTurn/memory/runs=64/N=10/K=2", metric: "ratio", bound: 2.2, unit: "x"},
	{what: "CPU of a turn against the lean loop, in memory, 512 runs", bench: "BenchmarkTurn/memory/runs=512/N=10/K=2", metric: "ratio", bound: 2.2, unit: "x"},
	{what: "CPU of a turn against the lean loop, every event durable, 64 runs", bench: "BenchmarkTurn/durable/runs=64/N=10/K=2", metric: "ratio", bound: 3.5, unit: "x"},
	{what: "CPU of a turn against the lean loop, every event durable, 512 runs", bench: "BenchmarkTurn/durable/runs=512/N=10/K=2", metric: "ratio", bound: 3.5, unit: "x"},
	{what: "CPU of a turn against the lean loop with two 4 KiB appends and fsyncs a turn, every event durable, one run of 50 turns with one call each", bench: "BenchmarkTurn/durable/runs=1/N=50/K=1", metric: "ratio", bound: 1.3, unit: "x"},
	{what: "CPU of a turn against the lean loop with two 4 KiB appends and fsyncs a turn, every event durable, one run of 20 turns with eight calls each", bench: "BenchmarkTurn/durable/runs=1/N=20/K=8", metric: "ratio", bound: 2, unit: "x"},
	{what: "allocations a turn above the lean loop, in memory, one run of 50 turns with one call each", bench: "BenchmarkTurn/memory/runs=1/N=50/K=1", metric: "allocs/turn-above-lean", bound: 300, unit: "allocs"},
	{what: "allocations a turn with two calls, in memory, 64 runs", bench: "BenchmarkTurn/memory/runs=64/N=10/K=2", metric: "allocs/turn", bound: 220, unit: "allocs"},
	{what: "from the start of a process to its first request, time against the lean loop, in memory", bench: "BenchmarkStart/process", metric: "ratio", bound: 2, unit: "x"},
	{what: "from the start of a run to its first request in a process that has done some, time against the lean loop, in memory", bench: "BenchmarkStart/run", metric: "ratio", unit: "x"},
	{what: "2,000 runs at once whose answers take 200 ms, memory of the process at its peak against the lean loop", bench: "BenchmarkManyAtOnce/runs=2000", metric: "ratio", bound: 1.5, unit: "x"},
	{what: "10,000 runs at once whose answers take 2 s, memory of the process at its peak, of one above the lean loop", bench: "BenchmarkManyAtOnce/runs=10000", metric: "KiB/run-above-lean", bound: 32, unit: "KiB", once: true},
	{what: "a run of an agent file prepared, its model a provider's, CPU", bench: "BenchmarkPreparedFile/provider", metric: "cpu-ns/file", bound: 2e6, unit: "ns"},
	{what: "the same, its model a script, which is read too", bench: "BenchmarkPreparedFile/script", metric: "cpu-ns/file", bound: 2e6, unit: "ns"},
	{what: "10,000 runs that a program started, bytes in use for one that waits for its model, above the lean loop", bench: "BenchmarkTenThousandStarted", metric: "KiB/run-above-lean", bound: 32, unit: "KiB", once: true},
	{what: "a run of one call that another run starts, CPU against the same run alone, in memory, one at a time", bench: "BenchmarkChild/memory/runs=1", metric: "ratio", bound: 1.5, unit: "x"},
	{what: "a run of one call that another run starts, CPU against the same run alone, in memory, 64 at once", bench: "BenchmarkChild/memory/runs=64", metric: "ratio", bound: 1.5, unit: "x"},
	{what: "a run of one call that another run starts, CPU against the same run alone, every event durable, one at a time", bench: "BenchmarkChild/durable/runs=1", metric: "ratio", bound: 1.5, unit: "x"},
	{what: "a run of one call that another run starts, CPU against the same run alone, every event durable, 64 at once", bench: "BenchmarkChild/durable/runs=64", metric: "ratio", bound: 1.5, unit: "x"},
	{what: "a step of one call, CPU against the same run alone, in memory, one at a time", bench: "BenchmarkStep/memory/runs=1", metric: "ratio", bound: 1.5, unit: "x"},
	{what: "a step of one call, CPU against the same run alone, in memory, 64 at once", bench: "BenchmarkStep/memory/runs=64", metric: "ratio", bound: 1.5, unit: "x"},
	{what: "a step of one call, CPU against the same run alone, every event durable, one at a time", bench: "BenchmarkStep/durable/runs=1", metric: "ratio", bound: 1.5, unit: "x"},
	{what: "a step of one call, CPU against the same run alone, every event durable, 64 at once", bench: "BenchmarkStep/durable/runs=64", metric: "ratio", bound: 1.5, unit: "x"},
	{what: "events that a step of one call adds to its workflow's journal", bench: "BenchmarkStepInJournal", metric: "events/step", bound: 5, unit: "events", once: true},
	{what: "commits that a step of one call adds to its workflow's journal", bench: "BenchmarkStepInJournal", metric: "commits/step", bound: 5, unit: "commits", once: true},
	{what: "pawl run of a loop over 10,000 items, 64 at once, every event durable, time against one over 1,000", bench: "BenchmarkTenThousandItems", metric: "time-ratio", bound: 11, unit: "x", once: true},
	{what: "the same, CPU", bench: "BenchmarkTenThousandItems", metric: "ratio", bound: 11, unit: "x", once: true},
	{what: "the same, CPU of an item", bench: "BenchmarkTenThousandItems", metric: "cpu-ns/item", unit: "ns", once: true},
	{what: "the same, peak memory of the process", bench: "BenchmarkTenThousandItems", metric: "peak-MiB", bound: 128, unit: "MiB", once: true},
	{what: "10,000 steps of a workflow at once, bytes in use for one that waits for its model, above the lean loop with a buffer of 4 KiB instead of 16", bench: "BenchmarkTenThousandAtOnce", metric: "KiB/child-above-lean", bound: 32, unit: "KiB", once: true},
	{what: "that lean loop, 10,000 at once, bytes in use for one", bench: "BenchmarkTenThousandAtOnce", metric: "KiB/lean", unit: "KiB", once: true},
	{what: "10,000 finished iterations taken up again, CPU", bench: "BenchmarkTakenUpAgain", metric: "cpu-s", bound: 0.5, unit: "s"},
	{what: "20,000 deltas decoded and published to one subscriber, CPU against Scanner with encoding/json", bench: "BenchmarkTwentyThousandDeltas", metric: "ratio", bound: 1, unit: "x"},
	{what: "allocations per delta published", bench: "BenchmarkPublishDelta/1", metric: "allocs/op", bound: 1, unit: "allocs", once: true},
	{what: "one durable event alone, p50 against a raw 4 KiB append and fsync", bench: "BenchmarkOneEventAlone", metric: "ratio", bound: 1.5, unit: "x"},
	{what: "64 writers, events a second", bench: "BenchmarkWriters64/events-per-append=1", metric: "events/s", bound: 20_000, least: true, unit: "events/s"},
	{what: "64 writers, p99", bench: "BenchmarkWriters64/events-per-append=1", metric: "p99-ns", bound: 5e6, unit: "ns"},
	{what: "the disk at that time, p99 of a raw 4 KiB append and fsync by one writer", bench: "BenchmarkWriters64/events-per-append=1", metric: "raw-p99-ns", unit: "ns"},
	{what: "a thousand runs at once that never wait for a model, one file, CPU per cycle", bench: "BenchmarkThousandRuns", metric: "cpu-ns/cycle", unit: "ns"},
	{what: "the same, p99 of an append", bench: "BenchmarkThousandRuns", metric: "append-p99-ns", unit: "ns"},
	{what: "the same, memory of a run whose tool is at work", bench: "BenchmarkThousandRuns", metric: "KiB/run", unit: "KiB"},
	{what: "an append beside ten readers of the run over HTTP, CPU of the process against none", bench: "BenchmarkAppendWithReaders/ten-of-one-run", metric: "ratio", bound: 1.5, unit: "x"},
	{what: "an append beside 1,000 readers over HTTP, each of a run of its own, CPU of the process against none", bench: "BenchmarkAppendWithReaders/a-thousand-of-a-thousand-runs", metric: "ratio", bound: 1.5, unit: "x"},
	{what: "1,000 runs that speak for a minute, each to a reader over HTTP: durable events lost", bench: "BenchmarkThousandRunsWithReaders", metric: "lost", unit: "events", once: true},
	{what: "the same, p99 of a durable event from its time to the reader", bench: "BenchmarkThousandRunsWithReaders", metric: "p99-ns", bound: 1e8, unit: "ns", once: true},
	{what: "the same, heap after 60 s against that after 20 s", bench: "BenchmarkThousandRunsWithReaders", metric: "heap-ratio", bound: 1.1, unit: "x", once: true},
	{what: "400-cycle run on disk, beyond 1.5 times its content", bench: "BenchmarkRunOnDisk", metric: "B/event-beyond-1.5x-content", bound: 600, unit: "B/event"},
	{what: "400-cycle run, CPU per request byte", bench: "BenchmarkLongRun", metric: "cpu-ns/request-byte", bound: 1, unit: "ns"},
	{what: "one more cycle on 200,000 tokens, projected, estimated and encoded with the memo warm", bench: "BenchmarkOneMoreCycleOn200kTokens", metric: "ms/cycle", bound: 1, unit: "ms"},
	{what: "compaction of 1,000 messages without the model call, by default", bench: "BenchmarkCompact1000Messages/default", metric: "ms", bound: 20, unit: "ms"},
	{what: "compaction of 1,000 messages without the model call, rolling-window", bench: "BenchmarkCompact1000Messages/rolling-window", metric: "ms", bound: 20, unit: "ms"},
	{what: "compaction of 1,000 messages without the model call, periodic-summary", bench: "BenchmarkCompact1000Messages/periodic-summary", metric: "ms", bound: 20, unit: "ms"},
	{what: "compaction of 1,000 messages without the model call, summarize-older", bench: "BenchmarkCompact1000Messages/summarize-older", metric: "ms", bound: 20, unit: "ms"},
	{what: "Messages decoder, CPU against Scanner with encoding/json", bench: "BenchmarkAgainstScannerAndEncodingJSON/anthropic", metric: "ratio", bound: 1, unit: "x", once: true},
	{what: "Messages decoder, times less CPU than the official SDK", bench: "BenchmarkAgainstTheOfficialSDK/anthropic", metric: "times-less", bound: 4, least: true, unit: "x", once: true},
	{what: "Responses decoder, CPU against Scanner with encoding/json", bench: "BenchmarkAgainstScannerAndEncodingJSON/responses", metric: "ratio", bound: 1, unit: "x", once: true},
	{what: "Responses decoder, times less CPU than the official SDK", bench: "BenchmarkAgainstTheOfficialSDK/responses", metric: "times-less", bound: 4, least: true, unit: "x", once: true},
	{what: "Chat Completions decoder, CPU against Scanner with encoding/json", bench: "BenchmarkAgainstScannerAndEncodingJSON/chat", metric: "ratio", bound: 1, unit: "x", once: true},
	{what: "Chat Completions decoder, times less CPU than the official SDK", bench: "BenchmarkAgainstTheOfficialSDK/chat", metric: "times-less", bound: 4, least: true, unit: "x", once: true},
	{what: "Gemini decoder, CPU against Scanner with encoding/json", bench: "BenchmarkAgainstScannerAndEncodingJSON/gemini", metric: "ratio", bound: 1, unit: "x", once: true},
	{what: "Gemini decoder, times less CPU than the official SDK", bench: "BenchmarkAgainstTheOfficialSDK/gemini", metric: "times-less", bound: 4, least: true, unit: "x", once: true},
	{what: "pawl run with three MCP servers that start in 1 s, 0.7 s and 0.4 s, time against the slowest alone", bench: "BenchmarkMCPStart", metric: "ratio", bound: 1.1, unit: "x"},
	{what: "a call of a tool of an MCP server over stdio, above the same call by the SDK's client", bench: "BenchmarkMCPCall", metric: "ns-above", bound: 3e5, unit: "ns"},
	{what: "that call by the SDK's client", bench: "BenchmarkMCPCall", metric: "bare-ns", unit: "ns"},
	{what: "what the stripped binary has because of MCP, by its share of the functions", bench: "BenchmarkMCPInTheBinary", metric: "MiB", bound: 4, unit: "MiB"},
	{what: "pawl version", bench: "BenchmarkBinary", metric: "version-ms", bound: 20, unit: "ms"},
	{what: "the stripped binary", bench: "BenchmarkBinary", metric: "MiB", bound: 33.85, unit: "MiB"},
}
