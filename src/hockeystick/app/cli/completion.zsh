#compdef hockeystick
_hockeystick() {
  local -a commands=(@commands@)
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  local command=$words[2]
  shift words; (( CURRENT-- ))
  case $command in
@cases@
  esac
}
if [[ $funcstack[1] == _hockeystick ]]; then _hockeystick "$@"; else compdef _hockeystick hockeystick; fi
