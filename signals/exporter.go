package signals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
)

const (
	// queued is how many spans wait for the exporter at most; what comes beyond
	// them is lost, because no run may wait.
	queued = 8192
	// batched is how many are sent at once, and linger how long the first waits.
	batched = 512
	linger  = time.Second
	// farewell is how long the last are waited for.
	farewell = 5 * time.Second
)

// Exporter sends what runs do to where its options say. Close it, so that the last is
// sent as well.
type Exporter struct {
	options  Options
	names    [terms]name
	resource resource
	sinks    []sink
	spans    chan span
	lost     atomic.Int64
	// failed is why the last were lost that could not be sent.
	failed error

	done chan struct{}
	once sync.Once
	ctx  context.Context
	stop context.CancelFunc
}

// sink takes in what is exported, as OTLP in JSON.
type sink interface {
	send(ctx context.Context, body []byte) error
}

// Open begins to export, or gives nil where nothing is to be.
func Open(o Options) (*Exporter, error) {
	if o.off() {
		return nil, nil
	}
	if err := o.wrong(); err != nil {
		return nil, err
	}
	x := &Exporter{options: o, names: names(), spans: make(chan span, queued), done: make(chan struct{})}
	for _, pair := range o.resource() {
		x.resource.Attributes = append(x.resource.Attributes, attribute{pair[0], valueOf(pair[1])})
	}
	if o.File != "" {
		f, err := os.OpenFile(o.File, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("signals: open the file of spans: %w", err)
		}
		x.sinks = append(x.sinks, fileSink{f})
	}
	if o.Endpoint != "" {
		x.sinks = append(x.sinks, newCollector(o.Endpoint, o.Headers))
	}
	x.ctx, x.stop = context.WithCancel(context.Background())
	go x.work()
	return x, nil
}

// Observer is what an engine tells the exporter by.
func (x *Exporter) Observer() engine.Observer {
	return engine.Observer{Traces: true, Run: func(r engine.RunInfo) func(*event.Event) {
		t := &teller{run: r, names: &x.names, dialect: x.options.dialect(), content: x.options.Content, put: x.put, calls: map[string]toolCallSpan{}}
		return t.event
	}}
}

func (x *Exporter) put(s span) {
	select {
	case x.spans <- s:
	default:
		x.lost.Add(1)
	}
}

// Close sends what is left, and says how much was lost. No engine may use the
// exporter any more.
func (x *Exporter) Close() error {
	x.once.Do(func() { close(x.spans) })
	timer := time.AfterFunc(farewell, x.stop)
	defer timer.Stop()
	<-x.done
	x.stop()
	if n := x.lost.Load(); n > 0 {
		return errors.Join(fmt.Errorf("signals: %d spans were lost", n), x.failed)
	}
	return nil
}

func (x *Exporter) work() {
	defer close(x.done)
	for open := true; open; {
		s, ok := <-x.spans
		if !ok {
			break
		}
		batch := []span{s}
		full := time.After(linger)
	gather:
		for len(batch) < batched {
			select {
			case s, open = <-x.spans:
				if !open {
					break gather
				}
				batch = append(batch, s)
			case <-full:
				break gather
			}
		}
		x.export(batch)
	}
	for _, s := range x.sinks {
		if f, ok := s.(fileSink); ok {
			_ = f.Close()
		}
	}
}

func (x *Exporter) export(batch []span) {
	body, err := json.Marshal(traceRequest{[]resourceSpans{{x.resource, []scopeSpans{{scope{"pawl"}, batch}}}}})
	for _, s := range x.sinks {
		if err == nil {
			err = s.send(x.ctx, body)
		}
		if err != nil {
			x.lost.Add(int64(len(batch)))
			x.failed, err = err, nil
		}
	}
}

// fileSink writes a line for each batch.
type fileSink struct{ *os.File }

func (f fileSink) send(_ context.Context, body []byte) error {
	_, err := f.Write(append(bytes.TrimSpace(body), '\n'))
	return err
}
