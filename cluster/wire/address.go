package wire

import (
	"errors"
	"net"
	"strconv"
)

// ErrAddress is returned for a text that is no address of a site.
var ErrAddress = errors.New("is not HOST:PORT")

// CheckAddress returns [ErrAddress] for a text at which no site can be dialled: it must be
// HOST:PORT in visible ASCII with a port of 1 to 65535. That the host is there is not asked.
func CheckAddress(text string) error {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return ErrAddress
		}
	}
	host, portText, err := net.SplitHostPort(text)
	if port, portErr := strconv.ParseUint(portText, 10, 16); err != nil || portErr != nil || port == 0 || host == "" {
		return ErrAddress
	}
	return nil
}
