package loopbench

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/launch"
	"github.com/pawlrun/pawl/launch/kinds"
)

// BenchmarkPrepare measures what a run from a file costs before it starts: the file is
// read and checked, and what its effects need is made.
func BenchmarkPrepare(b *testing.B) {
	dir := b.TempDir()
	file := filepath.Join(dir, "agent.yaml")
	text := `identity: {name: bench}
model_policy: {primary: openai/gpt-5}
prompt: {system: You work.}
tools: {allow: [fs.read, fs.edit, fs.list, fs.grep, fs.write, shell.exec, web.fetch]}
iteration: {max_cycles: 10, termination_conditions: [{kind: text-includes, text: done}]}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	o := launch.Options{
		Flags: launch.Flags{Workspace: b.TempDir()},
		Host:  launch.Host{Getenv: func(name string) string { return map[string]string{"OPENAI_API_KEY": "test"}[name] }},
	}
	prepare := func() time.Duration {
		start := processor.Time(b)
		for range 20 {
			f, err := kinds.Read(file)
			if err != nil {
				b.Fatal(err)
			}
			_, env, err := f.Launch("go", o)
			if err != nil {
				b.Fatal(err)
			}
			if err := env.Close(); err != nil {
				b.Fatal(err)
			}
		}
		return (processor.Time(b) - start) / 20
	}
	prepare()
	var took []float64
	for b.Loop() {
		took = append(took, float64(prepare().Microseconds())/1000)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(took), "cpu-ms")
}
