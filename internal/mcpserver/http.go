package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/server"
)

const (
	// Path is the path of the protocol over HTTP.
	Path = "/mcp"
	// principalExtra is the key of the principal in a token's extra information.
	principalExtra = "principal"
	// longestBody bounds the body of a request.
	longestBody = 4 << 20
	// idle is how long a session lives without a request.
	idle = time.Hour
	// slowest bounds the time of one write to a client.
	slowest = 30 * time.Second
)

// Handler serves streamable HTTP to clients whose requests have passed the guard of the
// runs' server. A session belongs to the principal that began it.
func (s *Server) Handler() http.Handler {
	protocol := func(*http.Request) *mcp.Server { return s.protocol }
	// The guard has already checked the Host and the Origin.
	sessions := mcp.NewStreamableHTTPHandler(protocol, &mcp.StreamableHTTPOptions{SessionTimeout: idle, DisableLocalhostProtection: true})
	single := mcp.NewStreamableHTTPHandler(protocol, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, DisableLocalhostProtection: true,
	})
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, longestBody))
		if err != nil {
			status := http.StatusBadRequest
			if _, large := errors.AsType[*http.MaxBytesError](err); large {
				status = http.StatusRequestEntityTooLarge
			}
			http.Error(w, err.Error(), status)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Time{}) // the request has been read completely
		_ = control.SetWriteDeadline(time.Time{})
		w = patient{w, control}
		if r.Header.Get("Mcp-Protocol-Version") >= statelessVersion || bytes.Contains(body, []byte(mcp.MetaKeyProtocolVersion)) {
			single.ServeHTTP(w, r)
			return
		}
		sessions.ServeHTTP(w, r)
	})
	known := auth.RequireBearerToken(func(_ context.Context, _ string, r *http.Request) (*auth.TokenInfo, error) {
		p := server.PrincipalOf(r.Context())
		return &auth.TokenInfo{
			UserID: string(p.Proof) + " " + p.Name, Expiration: time.Now().Add(idle), Extra: map[string]any{principalExtra: p},
		}, nil
	}, nil)(answer)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if server.PrincipalOf(r.Context()).Proof == event.ProofToken {
			known.ServeHTTP(w, r)
			return
		}
		answer.ServeHTTP(w, r)
	})
}

// patient is a response without a deadline, except for each write.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Write implements [http.ResponseWriter].
func (p patient) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(slowest))
	defer func() { _ = p.control.SetWriteDeadline(time.Time{}) }()
	return p.ResponseWriter.Write(b)
}

// Unwrap supports [http.ResponseController].
func (p patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
