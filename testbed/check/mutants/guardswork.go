package mutants

// guardsOfWork are about jobs and their files: rows 5, 7, 8 and 14.
func guardsOfWork() []Guard {
	return []Guard{
		{5, "table-of-rights", cut("meta/rights.go", "if «!e.is(row.Heard, from, m)» {"), inDaemon, "TestHostileSpeaker"},
		{5, "origin-of-a-job", cut("meta/rights.go", "		return ‹about(m).Job.Origin == from›"), inMeta, "TestRights"},
		{5, "job-of-this-site", cut("meta/rights.go", "		return ‹about(m).Job.Origin == e.self›"), inMeta, "TestRights"},
		{5, "copies-of-this-site", cut("meta/rights.go", "			return ‹d.isOf(e.self)›"), inMeta, "TestRights"},
		{5, "tasks-of-the-sender", cut("meta/rights.go", "			return ‹v.areOf(from)›"), inMeta, "TestRights"},
		{5, "load-of-the-sender", cut("meta/rights.go", "			return ‹m.Digest.Site == from›"), inMeta, "TestRights"},
		{5, "bundle-of-the-sender-by-rights", cut("meta/rights.go", "			return ‹m.Site == from›"), inMeta, "TestRights"},
		{5, "answer-that-was-asked-for", cut("meta/rights.go", "		return ‹ok && e.origin.awaits(from, a.Query)›"), inMeta, "TestRights"},
		{5, "holder-of-the-claim", cut("meta/rights.go", "	return ‹o.rec.Holder == from›\n}"), inMeta, "TestRights"},
		{5, "unknown-sites", cut("meta/rights.go", "case «t == nil && c.cfg.Admitted»:"), inMeta, "TestStrangersHaveNoSay"},
		{5, "messages-within-bounds", cut("meta/peer/convert.go", "	if broken := wire.Check(p); «len(broken) > 0» {"), inPeer, "TestSenselessMessages"},

		{7, "chunk-of-the-attempt", cut("meta/transfer/serve.go", "if «!member» {"), inTransfer, "TestServeRefuses"},
		{7, "files-of-the-holder", cut("sitesched/runner/files.go", "if «!v.HeldBy(a, from)» {"), inDaemon, "TestHostileFileRequests"},
		{7, "live-output-of-the-origin", cut("sitesched/runner/files.go", "		if «a.Job.Origin != from» {"), inDaemon, "TestHostileSpeaker"},
		{7, "sum-of-a-chunk", cut("store/blobstore/put.go", "if got := SumOf(data); «got != want» {"), inDaemon, "TestHostileInputs"},
		{7, "chunk-bomb", cut("meta/transfer/unpack.go", "if n := set.Bytes(); «u.MaxBytes > 0 && n > u.MaxBytes» {"), inTransfer, "TestUnpackRefuses"},
		{7, "length-of-a-chunk", cut("meta/transfer/unpack.go", "if «int64(len(data)) != f.ChunkSize(i)» {"), inTransfer, "TestUnpackRefuses"},
		{7, "offset-of-a-request", cut("meta/transfer/serve.go", "if «offset < 0» {"), inTransfer, "TestServeRefuses"},
		{7, "requests-at-a-time", cut("meta/transfer/serve.go", "if «s.busy[peer] >= s.limit» {"), inTransfer, "TestServeBusy"},
		{7, "piece-that-is-too-long", cut("meta/transfer/assemble.go", "if len(data) == 0 || «len(data) > len(part)» {"), inTransfer, "TestFetchFails"},
		{7, "set-to-unpack", cut("meta/transfer/unpack.go", "	if err := set.Validate(); «err != nil» {"), inTransfer, "TestUnpackRefuses"},

		{8, "path-that-leaves", cut("meta/transfer/path.go", "case «!filepath.IsLocal(p)»:"), inTransfer, "TestCheckPath"},
		{8, "path-in-its-shortest-form", cut("meta/transfer/path.go", "case «p == \".\" || path.Clean(p) != p»:"), inTransfer, "TestCheckPath"},
		{8, "path-that-steers", cut("meta/transfer/path.go", "case «strings.ContainsFunc(p, isControl)»:"), inTransfer, "TestCheckPath"},
		{8, "no-file-is-replaced-through-a-link", cut("meta/transfer/unpack.go", "	out, err := w.root.OpenFile(name, ⟦flags&^os.O_EXCL|flags⟧, mode)"), inTransfer, "TestUnpackStaysInside/file_is_a_link_out"},
		{8, "outputs-that-were-declared", cut("sitesched/runner/result.go", "case «file.Path != transfer.Stdout && file.Path != transfer.Stderr && !declared.Has(outputs, file.Path)»:"), inDaemon, "TestHostileOutcomes"},
		{8, "times-that-can-be", cut("sitesched/runner/result.go", "if «boundTimes(o, job.Instant(time.Now()))» {"), inDaemon, "TestHostileOutcomes"},
		{8, "figures-that-can-be", cut("sitesched/runner/result.go", "if «boundFigures(o)» {"), inDaemon, "TestHostileOutcomes"},
		{8, "list-of-outputs", cut("meta/transfer/validate.go", "	if fault := pathFault(f.Path); «fault != \"\"» {"), inDaemon, "TestHostileOutcomes"},
		{8, "one-chunk-one-size", cut("meta/transfer/validate.go", "if other, seen := sizes[sum]; «seen && other != size» {"), inTransfer, "TestSetRefuses"},
		{8, "file-that-is-a-folder", cut("meta/transfer/validate.go", "	return ⟦nil|s.validateFolders()⟧\n}"), inTransfer, "TestSetRefuses"},

		{14, "holder-is-given-up", cut("meta/overdue.go", "				⟪late = append(late, o)⟫"), inMeta, "TestHolderThatNeverFinishes"},
		{14, "holder-that-is-away", cut("meta/overdue.go", "			case «!or.hadItsSay(now, o, before)»:"), inMeta, "TestHolderThatIsAwayIsWaitedFor"},
		{14, "holder-that-breaks-its-streams", cut("meta/overdue.go", "	if «met-u.before >= overdueUp && u.back != job.Never && now >= u.back.Add(or.cfg.Timing.Overdue)» {"), inMeta, "TestHolderThatBreaksItsStreams"},
		{14, "holder-is-kept-away", cut("meta/overdue.go", "	⟪o.avoid(site, now.Add(or.cfg.Timing.Overdue), job.AttemptLost)⟫"), inMeta, "TestHolderThatNeverFinishes"},
		{14, "starts-that-can-be", cut("sitesched/runner/times.go", "		if *at != 0 && «!possible(*at, now)» {"), inDaemon, "TestHostileHolder"},
	}
}
