package daemon

import (
	"context"
	"time"

	"kith/internal/forecast"
	"kith/meta"
)

// foresightRests is how many times as long as it played the player rests: a site that is
// submitted to all the time would else spend a processor on forecasts, which those who submit
// and the loop miss. Jobs whose turn comes too late are told nothing.
const foresightRests = 7

// foresee plays scenarios beside the loop until ctx is done. The engine asks for one forecast
// at a time, so that in the long run they take an eighth of a processor.
func (d *Daemon) foresee(ctx context.Context, tell func(meta.Event)) {
	var stage forecast.Stage
	for {
		select {
		case f := <-d.foresight:
			began := time.Now()
			answer := stage.Play(f.Inquiry)
			rest := time.NewTimer(foresightRests * time.Since(began))
			tell(meta.Foreseen{Number: f.Number, Inquiry: f.Inquiry, Answer: answer})
			select {
			case <-rest.C:
			case <-ctx.Done():
				rest.Stop()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
