package lanetest

// StorageGroups are the names of the groups of RunStorage.
func StorageGroups() []string {
	var names []string
	for _, group := range storageGroups() {
		names = append(names, group.name)
	}
	return names
}

// TransportCases are the names of the cases of RunTransport.
func TransportCases() []string {
	var names []string
	for _, c := range transportCases() {
		names = append(names, c.name)
	}
	return names
}
