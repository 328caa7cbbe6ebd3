package loopbench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// readersEnv makes the test binary the readers of streams, whose addresses it reads
// from stdin: in a process of its own, so that its CPU time is not counted. It says
// how many events all of them get.
const readersEnv = "PAWL_LOOPBENCH_READERS"

// appends is how many events are appended while there are readers, or none.
const appends = 4000

// BenchmarkAppendWithReaders is what an append costs the process that serves
// streams, until every reader has it: beside ten readers of the run, and beside a
// thousand of which each reads a run of its own.
func BenchmarkAppendWithReaders(b *testing.B) {
	for _, c := range []struct {
		name          string
		runs, readers int
	}{{"ten-of-one-run", 1, 10}, {"a-thousand-of-a-thousand-runs", thousand, thousand}} {
		b.Run(c.name, func(b *testing.B) {
			var ratios, alone, beside []float64
			for b.Loop() {
				without := appendBeside(b, c.runs, 0)
				with := appendBeside(b, c.runs, c.readers)
				alone, beside = append(alone, without), append(beside, with)
				ratios = append(ratios, with/without)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(ratios), "ratio")
			b.ReportMetric(median(alone), "alone-cpu-ns/append")
			b.ReportMetric(median(beside), "cpu-ns/append")
		})
	}
}

// appendBeside is the processor time of an append.
func appendBeside(b *testing.B, runs, readers int) float64 {
	store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "journal.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	s := serving(b, store)
	defer s.stop()
	drivers := make([]*journaltest.Driver, runs)
	for i := range drivers {
		drivers[i] = journaltest.Start(b, store, fmt.Sprint("r", i))
	}
	all := s.readers(b, readers, readers*(1+appends/runs), func(i int) string { return fmt.Sprintf("/v1/runs/r%d/events", i%runs) })
	all.line(b, "ready")
	start := processor.Time(b)
	for i := range appends {
		drivers[i%runs].Append(b, event.InputReceived{Text: "some words of text"})
	}
	all.line(b, "done")
	return float64(processor.Time(b)-start) / appends
}

// site is a server that listens.
type site struct {
	url  string
	stop func()
}

func serving(b testing.TB, store journal.Store) site {
	b.Helper()
	e := engine.New(store, versions.Make, engine.Options{})
	s := servingOn(b, store, e)
	stop := s.stop
	s.stop = func() {
		stop()
		e.Close()
	}
	return s
}

func servingOn(b testing.TB, store journal.Store, e *engine.Engine) site {
	b.Helper()
	s, err := server.New(server.Options{
		Store: store, Engine: e, Controller: control.New(store, e), Agents: b.TempDir(), User: "somebody",
		NoAuth: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	return site{url: "http://" + l.Addr().String(), stop: func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}}
}

// readers are those of streams in a process of their own.
type readers struct {
	out *bufio.Reader
}

// readers starts n readers, of which each reads a stream; together they get some
// events.
func (s site) readers(b *testing.B, n, events int, path func(int) string) readers {
	b.Helper()
	if n == 0 {
		return readers{}
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprint(readersEnv, "=", events))
	cmd.Stderr = os.Stderr
	var urls strings.Builder
	for i := range n {
		fmt.Fprintln(&urls, s.url+path(i))
	}
	cmd.Stdin = strings.NewReader(urls.String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return readers{bufio.NewReader(out)}
}

// line waits for what the readers say.
func (r readers) line(b *testing.B, want string) {
	b.Helper()
	if r.out == nil {
		return
	}
	got, err := r.out.ReadString('\n')
	if strings.TrimSpace(got) != want {
		b.Fatalf("the readers say %q, %v; want %q", got, err, want)
	}
}

// received is what all readers got.
type received struct {
	Durable, Live, Gaps int64
	// P50 and P99 are how long durable events took, LiveP99 the others.
	P50, P99, LiveP99 time.Duration
}

// wait waits for the end of all streams.
func (r readers) wait(b *testing.B) (h received) {
	b.Helper()
	line, err := r.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err != nil {
		b.Fatalf("the readers say %q: %v", line, err)
	}
	return h
}

// read reads streams, and says when each has had its first event, when all have had
// as many as they get, and in the end what they got.
func read(events int64) {
	var urls []string
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		urls = append(urls, lines.Text())
	}
	var begun, all sync.WaitGroup
	begun.Add(len(urls))
	var had atomic.Int64
	streams := make([]stream, len(urls))
	for i, url := range urls {
		all.Go(func() {
			first := sync.OnceFunc(begun.Done)
			err := streams[i].read(url, func() {
				first()
				if had.Add(1) == events {
					fmt.Println("done")
				}
			})
			if err != nil {
				fmt.Fprintln(os.Stderr, url, err)
			}
		})
	}
	begun.Wait()
	fmt.Println("ready")
	all.Wait()
	var h received
	var durable, live []time.Duration
	for _, s := range streams {
		h.Gaps, h.Durable = h.Gaps+s.gaps, h.Durable+s.got
		durable, live = append(durable, s.durable...), append(live, s.live...)
	}
	h.Live = int64(len(live))
	h.P50, h.P99, h.LiveP99 = quantile(durable, 0.5), quantile(durable, 0.99), quantile(live, 0.99)
	line, err := json.Marshal(h)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[int(float64(len(d))*q)]
}

// stream is what one reader got: how many durable events, how long those took that
// happened while it was listening, and how many numbers are missing.
type stream struct {
	opened         time.Time
	durable, live  []time.Duration
	got, seq, gaps int64
}

// read calls each for every durable event of a stream.
func (s *stream) read(url string, each func()) error {
	r, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/event-stream")
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	s.opened = time.Now()
	lines := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil && err != bufio.ErrBufferFull {
			return err
		}
		data, ok := strings.CutPrefix(string(line), "data: ")
		if !ok {
			continue
		}
		at := timeOf(data)
		took := time.Since(at)
		if after, ok := strings.CutPrefix(data, `{"pos":`); ok {
			_, after, _ = strings.Cut(after, `"seq":`)
			number, _, _ := strings.Cut(after, ",")
			seq, _ := strconv.ParseInt(number, 10, 64)
			s.gaps += seq - s.seq - 1
			s.seq, s.got = seq, s.got+1
			if at.After(s.opened) {
				s.durable = append(s.durable, took)
			}
			each()
		} else {
			s.live = append(s.live, took)
		}
	}
}

// timeOf is when an event was.
func timeOf(data string) time.Time {
	_, after, _ := strings.Cut(data, `"time":"`)
	text, _, _ := strings.Cut(after, `"`)
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return at
}
