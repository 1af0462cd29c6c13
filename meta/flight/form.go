package flight

import (
	"math/rand/v2"
	"reflect"
	"sync"

	"kith/internal/frozen"
	"kith/meta"
	"kith/sitesched"
	"kith/sitesched/batch"
)

// form is how engines, their inputs and their effects are written.
var form = sync.OnceValue(func() *frozen.Form {
	types := []reflect.Type{reflect.TypeFor[*rand.PCG](), reflect.TypeFor[meta.Changed]()}
	for _, e := range meta.Events() {
		types = append(types, reflect.TypeOf(e))
	}
	for _, m := range meta.Messages() {
		types = append(types, reflect.TypeOf(m))
	}
	return frozen.New(frozen.Rules{
		Types:   types,
		Windows: map[string][2]string{"fifo.Queue": {"items", "head"}, "sitesched.runSet": {"buf", "from"}},
		// What is set anew before it is read, and what the program of the player brings itself.
		Scratch: map[string][]string{
			"meta.Config":         {"Policies", "Board", "Starts"},
			"meta.Forecasts":      {"Forecaster"},
			"cluster.View":        {"board"},
			"meta.core":           {"out"},
			"meta.origin":         {"policy", "round", "answers"},
			"meta.bagOrigin":      {"tasks", "had"},
			"meta.openJob":        {"inline"}, // the room of at
			"meta.openPolicies":   {"judge"},
			"bags.Work":           {"Judge"},
			"bags.slot":           {"boxed"},
			"bags.Desk":           {"Scene", "ask", "want", "room", "left", "has", "bags", "users", "stands", "oldest", "allowed", "open", "asked", "shares"},
			"meta.seer":           {"used", "roles"},
			"forecast.Inquiry":    {"Scene", "Roles", "Days"},
			"sitesched.Scheduler": {"index", "scratch", "trial", "home", "indexed", "starts", "begun"},
		},
		// What those who only look change as well.
		Caches: map[string][]string{
			"store.Index":         {"name", "latest"},
			"meta.core":           {"counters"},
			"meta.seer":           {"dist", "last", "runs", "cached"},
			"meta.siteScope":      {"scope"},
			"meta.seated":         {"scope"},
			"meta.bagPolicies":    {"queue", "sites", "hosts"},
			"meta.openPolicies":   {"scope"},
			"bags.Work":           {"Scope"},
			"sitesched.Scheduler": {"recent", "surface", "surfaceValid", "lines", "admission", "passSteps", "passed", "clock"},
			"sitesched.queue":     {"scanned", "bounds"},
		},
		// What jobs run, what they left, and what invitations are proved by.
		Opaque: map[string][]string{
			"meta.Submit":         {"Payload"},
			"meta.SubmitBag":      {"Payload"},
			"meta.Verdict":        {"Payload"},
			"meta.GivenBundle":    {"Payload"},
			"meta.Launch":         {"Payload"},
			"meta.Fetch":          {"Files"},
			"meta.FetchSaved":     {"Files"},
			"meta.Saved":          {"Files"},
			"meta.SavedCopied":    {"Files"},
			"store.RecordSaved":   {"Files"},
			"meta.hostCopy":       {"payload"},
			"meta.heldTasks":      {"files"},
			"meta.OpenInvitation": {"Verifier"},
			"store.Invitation":    {"Verifier"},
			"store.SideRecord":    {"Data"},
			"store.HeldPayload":   {"Data"},
			"store.TaskFiles":     {"Set"},
			"store.AttemptFiles":  {"Data"},
			"job.Outcome":         {"Files"},
		},
		// What programs wrote, and digests of what jobs run.
		Hidden: map[string][]string{
			"job.Outcome":       {"ErrorLine"},
			"job.TaskResult":    {"ErrorLine"},
			"store.FailureKind": {"ErrorLine"},
			"meta.Submit":       {"BodyHash"},
			"meta.SubmitBag":    {"BodyHash"},
			"store.Job":         {"BodyHash"},
			"store.Bag":         {"BodyHash"},
		},
	})
})

// schema is a digest of all types that a recording is made of.
var schema = sync.OnceValue(func() string {
	return form().Schema(reflect.TypeFor[*meta.Engine](), reflect.TypeFor[*sitesched.Scheduler](), reflect.TypeFor[*batch.Site](), reflect.TypeFor[setting]())
})
