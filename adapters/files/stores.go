package files

import "github.com/mulligan-dev/mulligan/restart"

// Stores are all the stores of the home, as a healer or a host of runs takes them.
func (h *Home) Stores() restart.Stores {
	return restart.Stores{
		Ledger: h.Ledger(), Answers: h.Answers(), Instances: h.Instances(), Evidence: h.Evidence(), Reports: h.Reports(),
		Doorbells: h.Doorbell(), Runs: h.Runs(), Storm: h.Breaker(), Journal: h.Updates(), Lock: h.Writer(),
	}
}
