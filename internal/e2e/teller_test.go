package e2e

import "context"

type tale struct{}

func (m more) tell(ctx context.Context, r role) error { return nil }

func (m more) notifiers(o *options) error { return nil }
