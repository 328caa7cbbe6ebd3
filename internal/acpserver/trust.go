package acpserver

import (
	"context"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/host/guidance"
	"github.com/pawlrun/pawl/internal/view/terminal"
)

// guide returns the file for a new session with the editor's MCP servers, and the
// instructions and skills, as far as the editor's user trusts them.
func (s *Server) guide(ctx context.Context, id, dir string, f kinds.File) (kinds.File, guidance.Found, error) {
	found, err := guidance.In(dir)
	if err == nil {
		found, err = s.Trust.Use(ctx, found, s.asksTrust(acp.SessionId(id)))
	}
	if err != nil {
		return f, guidance.Found{}, err
	}
	f, note, err := s.serve(ctx, acp.SessionId(id), dir, f)
	if note != "" {
		found.Notes = append(found.Notes, note)
	}
	return f, found, err
}

// asksTrust returns the function that asks the editor's user whether to trust something.
// A request that is cancelled decides nothing.
func (s *Server) asksTrust(id acp.SessionId) func(context.Context, guidance.Question) (guidance.Answer, error) {
	return func(ctx context.Context, q guidance.Question) (guidance.Answer, error) {
		if s.decides(ctx) != nil {
			return guidance.Missing, nil
		}
		text := terminal.Marked(strings.Join(q.What, "\n")) + "\n" + q.Why
		answer, err := s.conn.RequestPermission(ctx, acp.RequestPermissionRequest{
			SessionId: id,
			ToolCall: acp.ToolCallUpdate{
				ToolCallId: acp.ToolCallId("trust-" + q.Digest), Title: acp.Ptr("Trust what " + terminal.Marked(q.Root) + " brings"), Kind: acp.Ptr(acp.ToolKindOther),
				Status: acp.Ptr(acp.ToolCallStatusPending), Content: []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(text))},
			},
			Options: []acp.PermissionOption{
				{OptionId: allowAlways, Kind: acp.PermissionOptionKindAllowAlways, Name: "Use them until they change"},
				{OptionId: rejectOnce, Kind: acp.PermissionOptionKindRejectAlways, Name: "Leave them out"},
			},
		})
		switch {
		case err != nil || answer.Outcome.Selected == nil:
			return guidance.Missing, err
		case answer.Outcome.Selected.OptionId == allowAlways:
			return guidance.Yes, nil
		}
		return guidance.No, nil
	}
}
