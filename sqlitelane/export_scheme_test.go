package sqlitelane

// ParseName reads what stands behind "sqlite:".
var ParseName = parseName
