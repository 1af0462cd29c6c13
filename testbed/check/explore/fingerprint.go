package explore

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// left out are fields that do not bear on what an engine does next: what it
// was configured with, counts for people, scratch space, history, indexes that
// repeat what stands elsewhere. Everything else
// counts, also what is added to the engines later; a field that should be here and is
// not costs states, but hides none.
var leftOut = map[string][]string{
	"meta.core":           {"cfg", "out", "counters"},
	"meta.origin":         {"core", "peers", "host", "site", "policy", "round", "answers", "bags", "deps"},
	"meta.host":           {"core", "peers", "origin", "batch", "loadSeq", "began"},
	"meta.peers":          {"core"},
	"meta.openJob":        {"decision"},
	"store.Index":         {"name", "latest"},
	"store.State":         {"changes", "order", "requests"},
	"store.Job":           {"Events", "Acts", "Version", "Submitted", "Closed", "dirty", "RequestID", "BodyHash"},
	"store.Site":          {"DrainActor", "DrainReason", "DrainChanged"},
	"store.Copy":          {"Begun", "dirty"},
	"job.Outcome":         {"Start", "End"},
	"cluster.View":        {"bySite", "board"},
	"cluster.Peer":        {"Digest", "SeenAt", "Known"},
	"sitesched.Scheduler": {"cfg", "index", "starts", "scratch", "allotment", "allotted", "trial", "passSteps", "notes", "begun", "admission", "surface", "surfaceValid", "clock", "passed"},
	"sitesched.queue":     {"scanned", "bounds"},
	"sitesched.table":     {"vacant"},

	"meta.dependencies": {"core", "jobs", "bags", "waitsFor", "names"},

	"meta.bagOrigin": {"core", "peers", "jobs", "host", "works", "desk", "usage", "deps"},
	"meta.openBag":   {"rec", "at", "cpu"},
	// What policies are is the same everywhere, and what they have found is what they find again.
	"meta.openPolicies": {"judge", "scope"},
	"bags.Work":         {"Judge", "Scope"},
	"meta.seated":       {"scope"},
	"meta.siteScope":    {"scope"},
	"meta.bagPolicies":  {"queue"},
	"meta.taskHost":     {"core", "host", "peers", "origin", "rng"},
	"meta.heldTasks":    {"rec", "line"},
	"meta.taskRun":      {"bundle"},
	"meta.pilot":        {"line", "run"},
	"store.Bag":         {"Acts", "Version", "Submitted", "Closed", "RequestID", "BodyHash", "Sums", "dirty", "pages"},
	"store.TaskBundle":  {"Deadline", "dirty"}, // an index has it
	"store.HeldBundle":  {"Accepted", "dirty"},
}

// ofBags are fields that count in worlds with a bag only: elsewhere they tell of nothing.
var ofBags = map[string]string{"meta.host": "tasks", "meta.Engine": "bags"}

// ofReplicas are fields that count in worlds with replicas only.
var ofReplicas = map[string]string{"store.TaskBundle": "Granted"}

// fingerprint writes all that v holds in a form that is the same for what
// behaves the same.
type fingerprint struct {
	b []byte
	kind
}

// kind says which fields count.
type kind struct {
	bags     bool // there is a bag in the world
	replicas bool // which may have replicas
}

// fingerprint begins one.
func (c *Config) fingerprint() fingerprint {
	return fingerprint{kind: kind{bags: c.Tasks > 0, replicas: c.Replicas > 0}}
}

// plan says which fields of a struct count.
type plan struct{ fields []int }

var plans sync.Map // planKey to *plan

type planKey struct {
	of reflect.Type
	in kind
}

func planOf(t reflect.Type, in kind) *plan {
	if p, ok := plans.Load(planKey{t, in}); ok {
		return p.(*plan)
	}
	name, _, _ := strings.Cut(t.String(), "[")
	p := &plan{}
	for i := range t.NumField() {
		f := t.Field(i)
		counts := (in.bags || ofBags[name] != f.Name) && (in.replicas || ofReplicas[name] != f.Name)
		if counts && !slices.Contains(leftOut[name], f.Name) && f.Type.Kind() != reflect.Func {
			p.fields = append(p.fields, i)
		}
	}
	plans.Store(planKey{t, in}, p)
	return p
}

func (f *fingerprint) number(n uint64) { f.b = binary.AppendUvarint(f.b, n) }

func (f *fingerprint) text(s string) {
	f.number(uint64(len(s)))
	f.b = append(f.b, s...)
}

func (f *fingerprint) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			f.b = append(f.b, 1)
		} else {
			f.b = append(f.b, 0)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		f.b = binary.AppendVarint(f.b, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		f.number(v.Uint())
	case reflect.Float32, reflect.Float64:
		f.number(math.Float64bits(v.Float()))
	case reflect.String:
		f.text(v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			f.b = append(f.b, 0)
			return
		}
		f.b = append(f.b, 1)
		if v.Kind() == reflect.Interface {
			f.text(v.Elem().Type().String())
		}
		f.value(v.Elem())
	case reflect.Slice, reflect.Array:
		f.number(uint64(v.Len()))
		for i := range v.Len() {
			f.value(v.Index(i))
		}
	case reflect.Map:
		f.table(v)
	case reflect.Struct:
		f.structure(v)
	default:
		panic(fmt.Sprintf("explore: %v in an engine: how can it be compared?", v.Type()))
	}
}

func (f *fingerprint) structure(v reflect.Value) {
	name := v.Type().Name()
	if strings.HasPrefix(name, "Queue[") {
		// What has been taken out no longer counts.
		items, head := v.FieldByName("items"), int(v.FieldByName("head").Int())
		f.number(uint64(items.Len() - head))
		for i := head; i < items.Len(); i++ {
			f.value(items.Index(i))
		}
		return
	}
	if strings.HasPrefix(name, "Table[") {
		f.set(v)
		return
	}
	for _, i := range planOf(v.Type(), f.kind).fields {
		f.value(v.Field(i))
	}
}

// set writes what a hash table refers to, in the order of what it looks like:
// where a reference lies depends on the seed of the table and on what came before.
func (f *fingerprint) set(v reflect.Value) {
	hashes, refs := v.FieldByName("hashes"), v.FieldByName("refs")
	var entries []string
	for i := range hashes.Len() {
		if hashes.Index(i).Uint() != 0 {
			k := fingerprint{kind: f.kind}
			k.value(refs.Index(i))
			entries = append(entries, string(k.b))
		}
	}
	slices.Sort(entries)
	f.number(uint64(len(entries)))
	for _, e := range entries {
		f.text(e)
	}
}

// table writes a map in the order of what its keys look like.
func (f *fingerprint) table(v reflect.Value) {
	type entry struct {
		key   string
		value reflect.Value
	}
	entries := make([]entry, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		k := fingerprint{kind: f.kind}
		k.value(it.Key())
		entries = append(entries, entry{string(k.b), it.Value()})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	f.number(uint64(len(entries)))
	for _, e := range entries {
		f.text(e.key)
		f.value(e.value)
	}
}
