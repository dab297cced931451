"""The one way in which a run is keyed, guarded, resumed, costed and finished."""
