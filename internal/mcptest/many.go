package mcptest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Query is what a model might look for, and the tool of [Many] that it means.
type Query struct{ Text, Want string }

// Queries are fair ones: they name the thing and what is to be done in their own
// words, not in those of the definition.
var Queries = []Query{
	{"open a new bug report for the team", "create_issue"},
	{"who is assigned to this issue, change the assignee", "assign_issue"},
	{"merge my branch's pull request", "close_pull_request"},
	{"show all pull requests that wait for review", "list_pull_requests"},
	{"send an email message to a customer", "create_email"},
	{"search old emails by subject", "search_emails"},
	{"schedule a meeting in the calendar", "create_calendar_event"},
	{"list the meetings of next week", "list_calendar_events"},
	{"give a customer their money back for a payment", "close_payment"},
	{"export invoices as CSV", "export_invoices"},
	{"delete a file in the shared drive", "delete_document"},
	{"comment on a support ticket", "comment_on_ticket"},
	{"order history of purchases", "get_order_history"},
	{"update the stock of a product in the warehouse", "update_product"},
	{"add a contact to the CRM", "create_contact"},
	{"restart or stop a deployment", "close_deployment"},
	{"read the log of changes to a database backup", "get_backup_history"},
	{"find an employee by name", "search_employees"},
	{"read the weather forecast for a city", "get_forecast"},
	{"translate: list available translations", "list_translations"},
}

// thing is what ten of the tools are about.
type thing struct{ name, plural, about, field string }

var things = []thing{
	{"issue", "issues", "a bug report or task in the issue tracker of a team", "repository"},
	{"pull_request", "pull_requests", "a change of a branch that waits for review and to be merged", "branch"},
	{"email", "emails", "a message in a mailbox, with recipients, a subject and attachments", "recipient"},
	{"calendar_event", "calendar_events", "a meeting or appointment in a calendar, at a time and a place", "start_time"},
	{"payment", "payments", "money that a customer paid by card or transfer; closing one refunds it, so that the money goes back", "amount"},
	{"invoice", "invoices", "a bill to a customer with positions and taxes", "due_date"},
	{"document", "documents", "a file in the shared drive, such as a text, sheet or slide deck", "folder"},
	{"ticket", "tickets", "a question or complaint of a customer at the support desk", "priority"},
	{"order", "orders", "a purchase in the shop with its articles and delivery", "customer"},
	{"product", "products", "an article of the shop with its price and its stock in the warehouse", "sku"},
	{"contact", "contacts", "a person or company in the CRM with address and phone number", "phone"},
	{"deployment", "deployments", "a version of a service that runs in a cluster; closing one stops it", "service"},
	{"backup", "backups", "a copy of a database that can be restored", "database"},
	{"employee", "employees", "a person who works for the company, with role and manager", "department"},
	{"forecast", "forecasts", "the weather at a place for the next days: rain, wind and temperature in a city", "city"},
	{"translation", "translations", "a text of the product in another language", "language"},
	{"campaign", "campaigns", "an advertisement that runs for some weeks with an audience", "audience"},
	{"survey", "surveys", "questions to users and their answers", "question"},
	{"flight", "flights", "a journey by air with seats, airline and times", "airport"},
	{"hotel_booking", "hotel_bookings", "a room in a hotel for some nights", "nights"},
	{"recipe", "recipes", "ingredients and steps of a dish", "ingredient"},
	{"playlist", "playlists", "songs in an order that a listener chose", "song"},
	{"sensor", "sensors", "a device in a building that measures something", "room"},
	{"certificate", "certificates", "a TLS key pair of a domain with its expiry", "domain"},
	{"experiment", "experiments", "a feature that some users see, with its figures", "variant"},
}

// Many is a page of 250 tools, as a server with as many lists them.
func Many() string {
	verbs := []struct{ tool, title, about, arg string }{
		{"create_%[1]s", "Create %[1]s", "Creates a new %[1]s. %[2]s is %[3]s.", "fields"},
		{"get_%[1]s", "Get %[1]s", "Reads one %[1]s by its id, with all of its fields. %[2]s is %[3]s.", "id"},
		{"list_%[4]s", "List %[4]s", "Lists the %[4]s that there are, the newest first, in pages. %[2]s is %[3]s.", "page"},
		{"search_%[4]s", "Search %[4]s", "Searches %[4]s by words and filters. %[2]s is %[3]s.", "query"},
		{"update_%[1]s", "Update %[1]s", "Changes fields of one %[1]s. %[2]s is %[3]s.", "changes"},
		{"delete_%[1]s", "Delete %[1]s", "Removes one %[1]s for good. %[2]s is %[3]s.", "id"},
		{"close_%[1]s", "Close %[1]s", "Ends the work on one %[1]s. %[2]s is %[3]s.", "reason"},
		{"assign_%[1]s", "Assign %[1]s", "Makes a person responsible for one %[1]s. %[2]s is %[3]s.", "assignee"},
		{"comment_on_%[1]s", "Comment on %[1]s", "Adds a remark to one %[1]s. %[2]s is %[3]s.", "comment"},
		{"", "", "", ""},
	}
	last := []struct{ tool, title, about, arg string }{
		{"get_%[1]s_history", "History of %[1]s", "Reads who changed one %[1]s, and when. %[2]s is %[3]s.", "since"},
		{"export_%[4]s", "Export %[4]s", "Writes %[4]s to a CSV file. %[2]s is %[3]s.", "format"},
	}
	var tools []string
	for i, t := range things {
		verbs[len(verbs)-1] = last[i%2]
		if t.name == "order" || t.name == "backup" {
			verbs[len(verbs)-1] = last[0]
		}
		if t.name == "invoice" {
			verbs[len(verbs)-1] = last[1]
		}
		words := strings.ReplaceAll(t.name, "_", " ")
		for _, v := range verbs {
			title := fmt.Sprintf(v.title, words, "", "", strings.ReplaceAll(t.plural, "_", " "))
			title, _, _ = strings.Cut(title, "%!")
			about := fmt.Sprintf(v.about, words, "A "+words, t.about, strings.ReplaceAll(t.plural, "_", " "))
			about, _, _ = strings.Cut(about, "%!")
			name := fmt.Sprintf(v.tool, t.name, "", "", t.plural)
			name, _, _ = strings.Cut(name, "%!")
			text, err := json.Marshal(map[string]any{
				"name": name, "title": title, "description": about,
				"inputSchema": map[string]any{"type": "object", "properties": map[string]any{
					v.arg:   map[string]any{"type": "string", "description": "The " + v.arg + " of the " + words + "."},
					t.field: map[string]any{"type": "string", "description": "The " + t.field + " that it is about."},
				}, "required": []string{v.arg}},
			})
			if err != nil {
				panic(err)
			}
			tools = append(tools, string(text))
		}
	}
	return `{"tools":[` + strings.Join(tools, ",") + `]}`
}
