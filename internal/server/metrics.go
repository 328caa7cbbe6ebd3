package server

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/internal/signals"
	"github.com/pawlrun/pawl/journal"
)

// exposition is Prometheus' text format, which is not JSON.
type exposition string

// showMetrics returns the metrics.
func (s *Server) showMetrics(a *apiRequest[none, none]) (exposition, error) {
	load, err := s.loadText(a.Context())
	if err != nil {
		return "", err
	}
	writeMetrics(a.w, a.status, s.metrics.Text()+load)
	return "", errAnswered
}

func writeMetrics(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// Metrics returns a handler that serves GET /metrics and nothing else. It requires the right
// to read runs.
func (s *Server) Metrics() (http.Handler, error) {
	only, err := s.routes(slices.DeleteFunc(operations(), func(o operation) bool { return o.path != "/metrics" }))
	return s.recovered(s.guarded(only)), err
}

// loadText returns the gauges of a journal that several machines share.
func (s *Server) loadText(ctx context.Context) (text string, err error) {
	if counts, may := s.store.(journal.CountsCommits); may {
		commits, appends := counts.Commits()
		text = signals.Gauge("pawl_journal_commits", "Commits of this process to the journal.", nil, map[string]float64{"": float64(commits)}) +
			signals.Gauge("pawl_journal_appends", "Appends in these commits, each of one run.", nil, map[string]float64{"": float64(appends)})
	}
	tenants, may := s.store.(journal.KeepsTenants)
	if !may {
		return text, nil
	}
	load, err := tenants.Load(ctx)
	runs, oldest := map[string]float64{}, map[string]float64{}
	for _, l := range load {
		runs[l.Tenant+"\x00"+string(l.State)] = float64(l.Runs)
		if l.State == journal.Queued {
			oldest[l.Tenant] = time.Since(l.Oldest).Seconds()
		}
	}
	return text + signals.Gauge("pawl_runs", "Root runs of the journal that are queued or go on, by tenant.", []string{"tenant", "state"}, runs) +
		signals.Gauge("pawl_oldest_queued_seconds", "How long the oldest queued run of a tenant has waited.", []string{"tenant"}, oldest), err
}

// counted counts the answers of an operation by status.
func (s *Server) counted(o operation, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		seen := &answerCopy{ResponseWriter: w, status: http.StatusOK}
		defer func() { s.metrics.Add(signals.HTTPRequests, 1, o.method, o.path, strconv.Itoa(seen.status)) }()
		next(seen, r)
	}
}
