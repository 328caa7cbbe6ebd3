package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/internal/server"
)

// runsURI is the prefix of the addresses of all resources.
const runsURI = "pawl://runs/"

func (s *Server) addResources() {
	add := func(suffix, name, about, kind string, read mcp.ResourceHandler) {
		s.protocol.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: runsURI + "{run}" + suffix, Name: name, Description: about, MIMEType: kind}, read)
	}
	add("", "run", "A run as it stands: its state, cost and outcome, and what it asks people.", "application/json", s.readRun)
	add("/events", "events", "The events of a run, one JSON object a line.", "application/x-ndjson", s.readEvents)
	add("/log", "log", "What a run said, called and decided, for people.", "text/plain", s.readLog)
}

// runOf returns the run of a resource, escaped for a path.
func runOf(uri, suffix string) string {
	return url.PathEscape(strings.TrimSuffix(strings.TrimPrefix(uri, runsURI), suffix))
}

func contents(uri, kind, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: kind, Text: text}}}
}

// notThere returns the error for a resource that cannot be read.
func notThere(uri string, err error) error {
	if isProblem(err, "not-found") {
		return mcp.ResourceNotFoundError(uri)
	}
	return err
}

func (s *Server) readRun(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	var text json.RawMessage
	uri := req.Params.URI
	if err := s.ask(ctx, server.Request{Method: http.MethodGet, Path: "/v1/runs/" + runOf(uri, "")}, &text); err != nil {
		return nil, notThere(uri, err)
	}
	return contents(uri, "application/json", string(text)), nil
}

func (s *Server) readEvents(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri, cursor := req.Params.URI, ""
	var lines strings.Builder
	for {
		var page struct {
			Items []json.RawMessage
			Next  string
		}
		path := "/v1/runs/" + runOf(uri, "/events") + "/events?limit=500" + cursor
		if err := s.ask(ctx, server.Request{Method: http.MethodGet, Path: path}, &page); err != nil {
			return nil, notThere(uri, err)
		}
		for _, e := range page.Items {
			lines.Write(e)
			lines.WriteByte('\n')
		}
		if page.Next == "" {
			return contents(uri, "application/x-ndjson", lines.String()), nil
		}
		cursor = "&cursor=" + url.QueryEscape(page.Next)
	}
}

func (s *Server) readLog(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	if err := access.Authorise(callerOf(ctx).Principal, access.Viewer); err != nil {
		return nil, err
	}
	row, err := s.Options.Server.RunRow(ctx, runOf(uri, "/log"))
	if err != nil {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	var text bytes.Buffer
	if err := s.WriteLog(ctx, row.ID, &text); err != nil {
		return nil, err
	}
	return contents(uri, "text/plain", text.String()), nil
}
