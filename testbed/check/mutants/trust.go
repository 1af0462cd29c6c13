package mutants

// trustMutants are mistakes in who is trusted for what, where only schedules with an enemy
// among the sites and revocations look.
func trustMutants() []Mutant {
	return []Mutant{
		{
			Name: "lease-of-revoked-ignored", Rule: "a job that a revoked site may run under a lease runs elsewhere at once",
			Changes: []Change{{"meta/revoke.go", "	if o.rec.Holder == site && o.rec.Outcome == nil && leased(", "	if now < 0 && o.rec.Holder == site && o.rec.Outcome == nil && leased("}},
			Caught:  hostileSeed("586"), Breaks: "S2",
		},
		{
			Name: "revoked-still-heard", Rule: "a revoked site is heard as long as it has a stream",
			Changes: []Change{{"meta/rights.go", "	case t != nil && t.State != store.SiteKnown:\n", "	case t != nil && t.State > store.SiteRevoked:\n"}},
			Caught:  hostileSeed("256"), Breaks: "trust",
		},
		{
			Name: "revoked-runs-on", Rule: "what runs for a site that is revoked is not stopped",
			Changes: []Change{{"meta/revoke.go", "	h.kill(c, Kill{Stale: true, ", "	c.killed = true //"}},
			Caught:  hostileSeed("52"), Breaks: "trust",
		},
		{
			Name: "earlier-bundle-taken", Rule: "a site is known by a bundle that is earlier than the known one",
			Changes: []Change{{"store/applytrust.go", "	case b.Sequence < old.Sequence:\n", "	case b.Sequence < old.Sequence && old.Sequence == 0:\n"}},
			Caught:  hostileSeed("0"), Breaks: "trust",
		},
		{
			Name: "empty-bundle-taken", Rule: "a site is known by a bundle without a CA",
			Changes: []Change{{"store/applytrust.go", "	case len(b.Data) == 0 || len(b.Keys) == 0:\n", "	case len(b.Data) > 0 && len(b.Keys) > MaxBundleKeys:\n"}},
			Caught:  hostileSeed("0"), Breaks: "trust",
		},
		{
			Name: "bundles-from-anybody", Rule: "any site may say by which CAs another one is known",
			Changes: []Change{
				heardFromAnybody("site-bundle"),
				{"meta/bundle.go", "store.TakeBundle{Site: from,", "store.TakeBundle{Site: m.Site,"},
			},
			Caught: hostileSeed("1"), Breaks: "trust",
		},
	}
}

// hostileSeed plays one schedule with an enemy among the sites.
func hostileSeed(seed string) []string {
	return []string{"-hostile", "-seeds", "1", "-first-seed", seed}
}

// heardFromAnybody has messages of a kind heard whoever sends them.
func heardFromAnybody(kind string) Change {
	return Change{"meta/rights.go", "	if !e.is(row.Heard, from, m) {\n", "	if row.Kind != \"" + kind + "\" && !e.is(row.Heard, from, m) {\n"}
}
