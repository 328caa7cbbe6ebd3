package server

import (
	"io"
	"net/http"
	"strconv"

	"github.com/pawlrun/pawl/internal/signals"
)

// exposition is Prometheus' text format, which is not JSON.
type exposition string

// showMetrics returns the metrics.
func (s *Server) showMetrics(a *apiRequest[none, none]) (exposition, error) {
	a.w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	a.w.Header().Set("Cache-Control", "no-store")
	a.w.WriteHeader(a.status)
	_, _ = io.WriteString(a.w, s.metrics.Text())
	return "", errAnswered
}

// counted counts the answers of an operation by status.
func (s *Server) counted(o operation, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		seen := &answerCopy{ResponseWriter: w, status: http.StatusOK}
		defer func() { s.metrics.Add(signals.HTTPRequests, 1, o.method, o.path, strconv.Itoa(seen.status)) }()
		next(seen, r)
	}
}
