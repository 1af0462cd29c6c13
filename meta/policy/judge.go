package policy

import (
	"math"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"kith/meta/bags"
)

// maxKept bounds the verdicts that all judges of a compiler keep together, about 100 bytes
// each.
const maxKept = 1 << 16

// judge implements [bags.Judge].
type judge struct {
	c        *Compiler
	programs [bags.TextCount]*program
	verdicts memory // of asks
	offers   memory
	explain  [bags.TextCount]*explained // made when first asked for
	found    int                        // how often the texts were asked
}

// memory has what some texts gave, until what they read changes.
type memory struct {
	reads                 bags.VarSet
	byHost, bySite, moves bool
	kept                  map[*bags.Scope]*verdict
}

// verdict is what was found, and how many changes each scope had then.
type verdict struct {
	bags.Verdict
	site                       *bags.Scope
	sceneHost, sceneSite       uint64
	sceneBag, sceneQueue       uint64
	queueScope, bagScopeOfThen *bags.Scope
}

// roots has what is read of each root.
var roots = func() (of [bags.RootSplit + 1]bags.VarSet) {
	for r := range of {
		of[r] = bags.OfRoot(bags.Root(r))
	}
	return of
}()

// plan notes what the verdicts of the judge hang on.
func (j *judge) plan() {
	j.verdicts.plan(j.programs[bags.Requirements], j.programs[bags.Rank], j.programs[bags.Concurrency])
	asked := []*program{j.programs[bags.Sites]}
	if j.ofSite() {
		asked = append(asked, j.programs[bags.Requirements])
	}
	j.offers.plan(asked...)
}

func (m *memory) plan(asked ...*program) {
	for _, p := range asked {
		if p != nil {
			m.reads |= p.reads
		}
	}
	m.byHost, m.bySite = m.reads&roots[bags.RootHost] != 0, m.reads&roots[bags.RootSite] != 0
	m.moves = m.reads&(roots[bags.RootTime]|roots[bags.RootSplit]) != 0
}

// Verdict implements [bags.Judge]. Texts that read no host give the same for all hosts of
// a site, and are not asked again for each.
func (j *judge) Verdict(s *bags.Scene) bags.Verdict { return j.ask(&j.verdicts, s, (*judge).find) }

// ask returns what a memory has for a scene, or finds it.
func (j *judge) ask(m *memory, s *bags.Scene, find func(*judge, *bags.Scene) bags.Verdict) bags.Verdict {
	if m.moves {
		return find(j, s)
	}
	var at *bags.Scope
	switch {
	case m.byHost:
		at = s.Host
	case m.bySite:
		at = s.Site
	}
	if v := m.kept[at]; v != nil && m.holds(v, s) {
		return v.Verdict
	}
	found := find(j, s)
	j.keep(m, at, found, s)
	return found
}

// holds reports whether nothing has changed that the verdict hangs on.
func (m *memory) holds(v *verdict, s *bags.Scene) bool {
	return (v.site == s.Site || !m.bySite) && v.bagScopeOfThen == s.Bag && v.queueScope == s.Queue &&
		!changed(s.Host, v.sceneHost, m.reads, m.byHost) && !changed(s.Site, v.sceneSite, m.reads, m.bySite) &&
		!changed(s.Bag, v.sceneBag, m.reads, true) && !changed(s.Queue, v.sceneQueue, m.reads, true)
}

func changed(s *bags.Scope, since uint64, reads bags.VarSet, counts bool) bool {
	return counts && s != nil && s.ChangedSince(since, reads)
}

func latest(s *bags.Scope) uint64 {
	if s == nil {
		return 0
	}
	return s.Latest()
}

func (j *judge) keep(m *memory, at *bags.Scope, found bags.Verdict, s *bags.Scene) {
	v := m.kept[at]
	if v == nil {
		if j.c.kept >= maxKept {
			j.Forget() // hosts come and go: what asks again is found again
		}
		if j.c.kept >= maxKept {
			return
		}
		if m.kept == nil {
			m.kept = make(map[*bags.Scope]*verdict)
		}
		j.c.kept++
		v = &verdict{}
		m.kept[at] = v
	}
	*v = verdict{
		Verdict: found, site: s.Site, queueScope: s.Queue, bagScopeOfThen: s.Bag,
		sceneHost: latest(s.Host), sceneSite: latest(s.Site), sceneBag: latest(s.Bag), sceneQueue: latest(s.Queue),
	}
}

// Forget implements [bags.Judge].
func (j *judge) Forget() {
	for _, m := range []*memory{&j.verdicts, &j.offers} {
		j.c.kept -= len(m.kept)
		clear(m.kept)
	}
}

// find asks the texts of a verdict. A host that does not match is not ranked.
func (j *judge) find(s *bags.Scene) bags.Verdict {
	j.found++
	v := bags.Unbounded()
	if p := j.programs[bags.Requirements]; p != nil && !j.truth(p, s) {
		return bags.Verdict{}
	}
	if p := j.programs[bags.Rank]; p != nil {
		v.Rank, _ = j.number(p, s)
	}
	if p := j.programs[bags.Concurrency]; p != nil {
		if most, ok := j.number(p, s); ok {
			v.Most = most
		}
	}
	return v
}

// Offer implements [bags.Judge]. Requirements that hang on the site alone count, too: a
// host there would ask for nothing.
func (j *judge) Offer(s *bags.Scene) bool { return j.ask(&j.offers, s, (*judge).findOffer).Yes }

func (j *judge) findOffer(s *bags.Scene) bags.Verdict {
	j.found++
	p := j.programs[bags.Sites]
	yes := p == nil || j.truth(p, s)
	return bags.Verdict{Yes: yes && (!j.ofSite() || j.truth(j.programs[bags.Requirements], s))}
}

// ofSite reports whether there are requirements, which read the site alone.
func (j *judge) ofSite() bool {
	p := j.programs[bags.Requirements]
	return p != nil && p.reads&^(roots[bags.RootSite]|stable) == 0
}

// stable are the variables of a bag that do not change.
var stable = func() (s bags.VarSet) {
	for _, v := range []bags.Var{bags.BagName, bags.BagUser, bags.BagPriority, bags.BagTasks} {
		s.Add(v)
	}
	return s
}()

// Deadline implements [bags.Judge].
func (j *judge) Deadline(s *bags.Scene) (float64, bool) {
	p := j.programs[bags.Deadline]
	if p == nil {
		return 0, false
	}
	seconds, ok := j.number(p, s)
	return seconds, ok && seconds > 0
}

// Replicate implements [bags.Judge].
func (j *judge) Replicate(s *bags.Scene) bool {
	p := j.programs[bags.Replicate]
	return p != nil && j.truth(p, s)
}

// Cost implements [bags.Judge].
func (j *judge) Cost(t bags.Text) int {
	if p := j.programs[t]; p != nil {
		return p.cost
	}
	return 0
}

// truth reports whether a text gives true: UNDEFINED is not.
func (j *judge) truth(p *program, s *bags.Scene) bool {
	v, err := j.c.eval(p.program, s)
	return err == nil && v == types.True
}

// number returns the number that a text gives, false if that is UNDEFINED: what is
// infinite or no number is.
func (j *judge) number(p *program, s *bags.Scene) (float64, bool) {
	v, err := j.c.eval(p.program, s)
	n, ok := v.(types.Double)
	if err != nil || !ok || math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return 0, false
	}
	return float64(n), true
}

func (c *Compiler) eval(p cel.Program, s *bags.Scene) (ref.Val, error) {
	c.scene.Scene = s
	v, _, err := p.Eval(&c.scene)
	c.scene.Scene = nil
	return v, err
}

// activation gives programs the values of a scene.
type activation struct {
	*bags.Scene
	byName map[string]bags.Var
}

// ResolveName implements [cel.Activation]. What is not there is an error to the program,
// and so UNDEFINED.
func (a *activation) ResolveName(name string) (any, bool) {
	v, known := a.byName[name]
	if !known {
		if name == replicasName && a.Replicas != nil {
			return a.replicas(), true
		}
		return nil, false
	}
	root := bags.Vars[v].Root
	if root == bags.RootTime {
		return types.Double(a.Time(v)), true
	}
	if root == bags.RootSplit {
		if a.Split == nil {
			return nil, false
		}
		in, known := a.Split()
		return types.Bool(in), known
	}
	s := a.Scope(root)
	if s == nil {
		return nil, false
	}
	return s.Value(v, box)
}

func (a *activation) replicas() ref.Val {
	list := make([]ref.Val, len(a.Replicas))
	for i := range a.Replicas {
		list[i] = replica{&a.Replicas[i]}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, list)
}

// Parent implements [cel.Activation].
func (a *activation) Parent() cel.Activation { return nil }
