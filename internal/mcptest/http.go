package mcptest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// ServeHTTP answers over HTTP, with a session, and fails as the name of a tool says:
// reset, cut (an event stream without the answer), gateway (502), gone (404), bad (400).
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "s1")
		s.Note("session", m)
	case "tools/call":
		s.Note("call", m)
		if s.faultHTTP(w, m) {
			return
		}
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintln(w, s.Answer(m))
}

func (s *Server) faultHTTP(w http.ResponseWriter, m message) bool {
	switch m.Params.Name {
	case "reset":
		panic(http.ErrAbortHandler)
	case "cut":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ": the answer will follow\n\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "gateway":
		w.WriteHeader(http.StatusBadGateway)
	case "gone":
		w.WriteHeader(http.StatusNotFound)
	case "bad":
		w.WriteHeader(http.StatusBadRequest)
	case "moved":
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusTemporaryRedirect)
	default:
		return false
	}
	return true
}
