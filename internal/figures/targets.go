package main

// target is one promised figure: a metric of a benchmark and its bound.
type target struct {
	what   string
	bench  string
	metric string
	// bound is 0 for a figure that nobody promised.
	bound float64
	// least says that the figure must be at least the bound.
	least bool
	unit  string
	// once says that `make bench` runs the benchmark a single time: it counts, or
	// its target is far away, so that more runs would say nothing new.
	once bool
}

var targets = []target{
	{what: "CPU per cycle against the bare loop, in memory, one run", bench: "BenchmarkCycle/memory/runs=1", metric: "ratio", bound: 1.6, unit: "x"},
	{what: "CPU per cycle against the bare loop, in memory, 64 runs", bench: "BenchmarkCycle/memory/runs=64", metric: "ratio", bound: 2.2, unit: "x"},
	{what: "CPU per cycle against the bare loop, every event durable, one run", bench: "BenchmarkCycle/durable/runs=1", metric: "ratio", bound: 2.5, unit: "x"},
	{what: "the bare loop with two raw 4 KiB appends and fsyncs a cycle and no journal, CPU against itself without", bench: "BenchmarkBareLoopThatSyncs", metric: "ratio", unit: "x"},
	{what: "CPU per cycle against the bare loop, every event durable, 64 runs", bench: "BenchmarkCycle/durable/runs=64", metric: "ratio", bound: 3.5, unit: "x"},
	{what: "allocations a cycle above the bare loop, in memory", bench: "BenchmarkCycle/memory/runs=1", metric: "extra-allocs/cycle", bound: 300, unit: "allocs"},
	{what: "20,000 deltas decoded and published to one subscriber, CPU against Scanner with encoding/json", bench: "BenchmarkTwentyThousandDeltas", metric: "ratio", bound: 1, unit: "x"},
	{what: "allocations per delta published", bench: "BenchmarkPublishDelta/1", metric: "allocs/op", bound: 1, unit: "allocs", once: true},
	{what: "one durable event alone, p50 against a raw 4 KiB append and fsync", bench: "BenchmarkOneEventAlone", metric: "ratio", bound: 1.5, unit: "x"},
	{what: "64 writers, events a second", bench: "BenchmarkWriters64/events-per-append=1", metric: "events/s", bound: 20_000, least: true, unit: "events/s"},
	{what: "64 writers, p99", bench: "BenchmarkWriters64/events-per-append=1", metric: "p99-ns", bound: 5e6, unit: "ns"},
	{what: "the disk at that time, p99 of a raw 4 KiB append and fsync by one writer", bench: "BenchmarkWriters64/events-per-append=1", metric: "raw-p99-ns", unit: "ns"},
	{what: "a thousand runs at once that never wait for a model, one file, CPU per cycle", bench: "BenchmarkThousandRuns", metric: "cpu-ns/cycle", unit: "ns"},
	{what: "the same, p99 of an append", bench: "BenchmarkThousandRuns", metric: "append-p99-ns", unit: "ns"},
	{what: "the same, memory of a run whose tool is at work", bench: "BenchmarkThousandRuns", metric: "KiB/run", unit: "KiB"},
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
	{what: "pawl version", bench: "BenchmarkBinary", metric: "version-ms", bound: 20, unit: "ms"},
	{what: "the stripped binary", bench: "BenchmarkBinary", metric: "MiB", bound: 25, unit: "MiB"},
}
