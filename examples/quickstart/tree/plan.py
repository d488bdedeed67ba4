import planning_helpers

planning_helpers.run()
