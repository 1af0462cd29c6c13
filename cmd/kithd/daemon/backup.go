package daemon

import (
	"errors"
	"fmt"
	"io"
	"time"

	"kith/internal/job"
	"kith/store/backup"
	"kith/store/boltstore"
)

// imaged is a back end that can be copied while it is written to.
type imaged interface {
	Image() (*boltstore.Image, error)
}

// backUp writes a backup of the facts that are durable now.
func (d *Daemon) backUp(w io.Writer) error {
	from, is := d.backend.(imaged)
	if !is {
		return fmt.Errorf("facts kept by %T have no image", d.backend)
	}
	image, err := from.Image()
	if err != nil {
		return err
	}
	head := backup.Head{Site: d.siteID(), Generation: job.GenerationText(d.self.Generation), Made: time.Now().UTC(), Version: Version()}
	return errors.Join(backup.Write(w, head, image.Size(), image), image.Close())
}
