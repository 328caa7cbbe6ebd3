//lint:file-ignore SA1019 servers of protocol 2025-11-25 ask for roots, and a later protocol only advises against them

package mcp

import (
	"net/url"
	"path/filepath"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// roots returns the directories in the form of the protocol.
func (o Options) roots() []*sdk.Root {
	var all []*sdk.Root
	for _, dir := range o.Roots {
		all = append(all, &sdk.Root{URI: (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String(), Name: filepath.Base(dir)})
	}
	return all
}

// capabilities returns what a server may ask for: input of people, the answers of a
// model, the roots, and time for tasks.
func (o Options) capabilities() *sdk.ClientCapabilities {
	c := &sdk.ClientCapabilities{
		Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}},
	}
	c.AddExtension(extensionTasks, nil)
	if o.Sampling != nil {
		c.Sampling = &sdk.SamplingCapabilities{}
	}
	if len(o.Roots) > 0 {
		c.RootsV2 = &sdk.RootCapabilities{}
	}
	return c
}
