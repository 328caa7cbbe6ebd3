package loopbench

import (
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/processor"
)

// BenchmarkPreparedFile measures the CPU of preparing a run of an agent file, up to its
// first event, in a process that has prepared one before: the file is read and checked,
// its tools are made, and the sandbox of its commands is opened.
func BenchmarkPreparedFile(b *testing.B) {
	machine := sandbox.Strongest(b.Context(), shim, "")
	for name, model := range map[string]string{"provider": "openai/gpt-5", "script": ""} {
		b.Run(name, func(b *testing.B) {
			workspace := b.TempDir()
			prepare := func() error {
				path := filepath.Join("..", "..", "examples", "fix-the-test", "agent.yaml")
				text, err := spec.ReadFile(path)
				if err != nil {
					return err
				}
				_, env, err := launch.Agent(launch.File{Path: path, Text: text}, "go", launch.Options{
					Flags: launch.Flags{Workspace: workspace, Model: model},
					Host:  launch.Host{Sandbox: machine, Getenv: func(name string) string { return map[string]string{"OPENAI_API_KEY": "k"}[name] }},
				})
				if err != nil || env.Close == nil {
					return err
				}
				return env.Close()
			}
			if err := prepare(); err != nil {
				b.Fatal(err)
			}
			var took []float64
			for b.Loop() {
				const files = 20
				start := processor.Time(b)
				for range files {
					if err := prepare(); err != nil {
						b.Fatal(err)
					}
				}
				took = append(took, float64(processor.Time(b)-start)/files)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(took), "cpu-ns/file")
		})
	}
}
