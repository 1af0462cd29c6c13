package daemon

import (
	"kith/cmd/kithd/config"
	"kith/meta/peer"
)

// ratesOf returns what is taken of each peer.
func ratesOf(r config.Rates) peer.Rates {
	twice := func(perSecond int) peer.Rate { return peer.Rate{PerSecond: perSecond, AtOnce: 2 * perSecond} }
	return peer.Rates{
		peer.Queries: {PerSecond: r.Queries, AtOnce: max(1, r.Queries/peer.QueriesTogether)}, peer.Dealings: {PerSecond: r.Protocol, AtOnce: max(1, r.Protocol/peer.DealingsTogether)}, peer.Comparisons: twice(r.Comparisons), peer.Loads: twice(r.Loads), peer.Files: twice(r.Files),
		peer.Bundles: peer.DefaultRates()[peer.Bundles],
		peer.Streams: {PerSecond: r.Streams, AtOnce: max(peer.StreamsAtOnce, r.Streams)},
	}
}
