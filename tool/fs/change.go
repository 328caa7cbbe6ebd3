package fs

import "encoding/json"

// Change is the change that a call makes to a file: a new content, or a replacement for
// a part of the old one, for all occurrences if All is set.
type Change struct {
	Path, Old, New string
	Overwrite, All bool
}

// ChangeOf returns the change that a call makes, to show to people before they decide;
// false for a call that is not known to change a file.
func ChangeOf(tool string, args json.RawMessage) (c Change, known bool) {
	var a struct {
		Path       string
		Content    *string
		OldString  *string `json:"old_string"`
		NewString  *string `json:"new_string"`
		ReplaceAll bool    `json:"replace_all"`
	}
	switch err := json.Unmarshal(args, &a); {
	case err != nil || a.Path == "":
		return Change{}, false
	case tool == writeName && a.Content != nil:
		return Change{Path: a.Path, New: *a.Content, Overwrite: true}, true
	case tool == editName && a.OldString != nil && a.NewString != nil && *a.OldString != "":
		return Change{Path: a.Path, Old: *a.OldString, New: *a.NewString, All: a.ReplaceAll}, true
	}
	return Change{}, false
}
