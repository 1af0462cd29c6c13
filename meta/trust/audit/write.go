package audit

import "time"

// writer is the goroutine that writes a log.
type writer struct {
	*Log
	unsynced bool      // something written is not durable
	synced   time.Time // when the last sync was
	signed   time.Time // when the last head was
	failed   time.Time // when the disk refused a line; zero while it does not
	signLine string    // why there was no head, so that the log says it once
	next     *Head     // is told when it is durable
}

// write writes until the log is closed.
func (l *Log) write() {
	defer close(l.done)
	w := &writer{Log: l}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		last := w.round()
		if last {
			l.err = l.chain.close()
			return
		}
		if d, ok := w.pause(); ok {
			timer.Reset(d)
		} else {
			timer.Stop()
		}
		select {
		case <-l.wake:
		case <-timer.C:
		}
	}
}

// round writes what there is to write. It returns true if it was the last one.
func (w *writer) round() (last bool) {
	now := w.cfg.Now()
	resign := w.resign.Swap(false) // before what is written is taken: a head covers what came before it was asked for
	defer func() {
		if resign {
			w.resign.Store(true)
		}
	}()
	entries, lost, last := w.take(now)
	if !w.failed.IsZero() && now.Sub(w.failed) < retryEvery && !last {
		w.drop(entries, lost)
		return false
	}
	if lost > 0 {
		entries = append([]waiting{{counted: counted{Entry{Kind: KindLost, Text: "entries that could not be written"}, lost}}}, entries...)
	}
	if last {
		entries = append(entries, waiting{counted: counted{Entry: Entry{Kind: KindClosed}}})
	}
	if len(entries) > 0 {
		if err := w.lines(now, entries); err != nil {
			w.trouble(now, err)
			if lost > 0 {
				entries = entries[1:]
			}
			w.drop(entries, lost)
			return last
		}
		w.unsynced = true
	}
	if last || w.chain.number > 0 && (resign || now.Sub(w.signed) >= headEvery) {
		w.writeHead(now)
		resign = false
	}
	waits := false
	for _, e := range entries {
		waits = waits || e.durable != nil
	}
	if w.unsynced && (waits || last || now.Sub(w.synced) >= syncEvery) {
		err := w.chain.sync()
		w.trouble(now, err)
		for _, e := range entries {
			if e.durable != nil {
				e.durable <- err // has room for one
			}
		}
		w.unsynced, w.synced = err != nil, now
		if err == nil && w.next != nil {
			w.head.Store(w.next)
			w.next = nil
		}
	}
	return last
}

// take returns what is to be written.
func (w *writer) take(now time.Time) (entries []waiting, lost uint64, last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entries, lost, last = w.waiting, w.lost, w.closed
	w.waiting, w.lost = nil, 0
	for _, c := range w.refusals.due(now, last) {
		entries = append(entries, waiting{counted: c})
	}
	return entries, lost, last
}

// drop counts entries that could not be written.
func (w *writer) drop(entries []waiting, lost uint64) {
	for _, e := range entries {
		lost += max(1, e.count)
		if e.durable != nil {
			e.durable <- ErrLost // has room for one
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost += lost
}

// lines appends a line for each entry, and removes the oldest file if that began one.
func (w *writer) lines(now time.Time, entries []waiting) error {
	list := make([]*Line, len(entries))
	for i, e := range entries {
		list[i] = e.line(now, e.count)
	}
	before := w.chain.path
	if err := w.chain.append(now, list); err != nil {
		return err
	}
	if w.chain.path == before {
		return nil
	}
	if err := w.chain.spare(now); err != nil {
		w.cfg.Logger.Warn("oldest file of the audit log not removed; tried again with the next file", "error", err.Error())
	}
	return nil
}

// writeHead signs the last line.
func (w *writer) writeHead(now time.Time) {
	w.signed = now
	if w.cfg.Signer == nil {
		return
	}
	h, err := sign(w.cfg.Signer, Head{Site: w.cfg.Site, Number: w.chain.number, Hash: w.chain.hash, Time: now.UTC()})
	if err != nil {
		if why := err.Error(); why != w.signLine {
			w.signLine = why
			w.cfg.Logger.Warn("audit log not signed; tried again in an hour", "error", why)
		}
		return
	}
	w.signLine = ""
	l := Entry{Kind: KindHead}.line(now, 0)
	l.Head = h
	if err := w.chain.append(now, []*Line{l}); err != nil {
		w.trouble(now, err)
		w.signed = now.Add(retryEvery - headEvery)
		return
	}
	w.unsynced, w.next = true, h
}

// trouble notes what came of writing, and logs the change.
func (w *writer) trouble(now time.Time, err error) {
	switch {
	case err != nil:
		if w.failed.IsZero() {
			w.cfg.Logger.Error("audit log not written; what happens meanwhile is only counted", "error", err.Error(),
				"remedy", "free space on the disk of the data folder, and see that its folder audit belongs to the user of kithd")
		}
		w.failed = now
	case !w.failed.IsZero():
		w.failed = time.Time{}
		w.cfg.Logger.Info("audit log is written again")
	}
}

// pause returns how long there is nothing to do, unless something comes; false if for ever.
func (w *writer) pause() (time.Duration, bool) {
	now := w.cfg.Now()
	w.mu.Lock()
	next := w.refusals.wake()
	some := w.lost > 0
	w.mu.Unlock()
	soonest := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if w.unsynced {
		soonest(w.synced.Add(syncEvery))
	}
	if some || !w.failed.IsZero() {
		soonest(now.Add(retryEvery))
	}
	if w.cfg.Signer != nil {
		soonest(w.signed.Add(headEvery))
	}
	if next.IsZero() {
		return 0, false
	}
	return max(next.Sub(now), time.Millisecond), true
}
