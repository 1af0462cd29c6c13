package daemon

import (
	"context"

	"kith/internal/forecast"
	"kith/meta"
)

// foresee plays scenarios beside the loop until ctx is done. The engine asks for one forecast
// at a time, so that they never take more than one processor.
func (d *Daemon) foresee(ctx context.Context, tell func(meta.Event)) {
	var stage forecast.Stage
	for {
		select {
		case f := <-d.foresight:
			tell(meta.Foreseen{Number: f.Number, Inquiry: f.Inquiry, Answer: stage.Play(f.Inquiry)})
		case <-ctx.Done():
			return
		}
	}
}
