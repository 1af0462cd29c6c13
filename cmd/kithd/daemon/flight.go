package daemon

import (
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/cmd/kithd/metrics"
	"kith/meta"
	"kith/meta/flight"
)

const noRecording = "no flight recording; the site goes on"

// recordFlight has what the engine is fed recorded, where that is configured. A folder that
// cannot be used is told like a disk that fails later: the site works without.
func (d *Daemon) recordFlight(site meta.Site) {
	if !d.cfg.Flight.Enabled {
		return
	}
	ring, err := flight.OpenRing(flight.RingConfig{
		Data: d.cfg.Data, SizeBytes: d.cfg.Flight.SizeBytes, Files: d.cfg.Flight.Files,
		Room: func() error { return d.disk.Check(0, d.cfg.Files.KeepFreeBytes) }, Log: d.log,
	})
	if err != nil {
		d.log.Error(noRecording, "error", err.Error())
		return
	}
	self := d.state.Site()
	d.loop.records, err = flight.NewRecorder(flight.Subject{
		Version: Version(), Build: build(), Engine: d.engine, Meta: d.engineConfig(), Site: site, Processors: d.cfg.Processors(),
		Directories: d.cfg.Executor.Directories, ID: self.ID, Generation: self.Generation, Incarnation: self.Incarnation,
	}, ring)
	if err != nil { // a host of a test, or of another program
		d.loop.records = nil
		ring.Close()
		d.log.Error(noRecording, "error", err.Error())
		return
	}
	d.flight, d.loop.flushed = ring, func() { ring.Flush(time.Second) }
}

// flightFigures returns what is counted of the recording, nothing where there is none.
func (d *Daemon) flightFigures() []prometheus.Collector {
	if d.flight == nil {
		return nil
	}
	return metrics.Flight(func() (bool, uint64, uint64) {
		f := d.flight.Figures()
		return f.Recording, f.Bytes, f.Failures
	})
}

// build says of which revision this program was built.
func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
