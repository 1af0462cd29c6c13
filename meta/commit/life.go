package commit

import "kith/store"

// BeginLife records durably that a daemon starts on the facts of a site, whose
// first is as in [store.BeginLife]. A driver calls it before it makes the engine:
// nothing may be said to other sites before. Without a sealer there is no disk.
func BeginLife(facts *store.State, sealer Sealer, first store.BeginLife) error {
	if err := store.Record(facts, first); err != nil {
		return err
	}
	if sealer == nil {
		facts.DropChanges()
		return nil
	}
	return sealer.Seal(facts).Commit()
}
