package memory

import (
	"context"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
)

// DiscardEvidence implements ledger.EvidenceDiscarder.
func (s *evidence) DiscardEvidence(_ context.Context, k ledger.Key) (bool, error) {
	s.mu.evidence.Lock()
	defer s.mu.evidence.Unlock()
	_, ok := s.evidence[k]
	delete(s.evidence, k)
	return ok, nil
}

// DiscardReport implements ledger.ReportDiscarder.
func (s *reports) DiscardReport(_ context.Context, episode string) (bool, error) {
	s.mu.reports.Lock()
	defer s.mu.reports.Unlock()
	_, ok := s.reports[episode]
	delete(s.reports, episode)
	return ok, nil
}

// PruneAnswers implements ledger.AnswerPruner. It judges and drops in one step: between the two a run may be answered anew.
func (s *answers) PruneAnswers(_ context.Context, old func(ledger.Answer) bool) (n int, err error) {
	s.mu.answers.Lock()
	defer s.mu.answers.Unlock()
	var gone []string
	for _, id := range s.answers.order {
		a, _, err := s.answers.get(id)
		if err != nil {
			return 0, err
		}
		if old(a) {
			gone = append(gone, id)
		}
	}
	for _, id := range gone {
		s.answers.drop(id)
	}
	return len(gone), nil
}

// Discard implements run.Discarder. Before a name's holder nobody is remembered here, so that the name is free at once.
func (s *runs) Discard(_ context.Context, id string, may func(run.Run) bool) (bool, error) {
	s.mu.runs.Lock()
	defer s.mu.runs.Unlock()
	r, ok, err := s.runs.get(id)
	if err != nil || !ok || r.Ended == nil || !may(r) {
		return false, err
	}
	at := [2]string{r.Project, r.Name}
	if s.names[at] == id {
		delete(s.names, at)
	}
	s.runs.drop(id)
	return true, nil
}
